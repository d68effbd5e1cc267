//! Fairness: how decisions, errors and probabilities differ between the groups of a sensitive attribute.
