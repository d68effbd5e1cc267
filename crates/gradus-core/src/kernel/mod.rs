//! Small dense kernels, chosen at run time for the processor at hand.
