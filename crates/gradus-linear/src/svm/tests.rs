//! Tests of the machines.
