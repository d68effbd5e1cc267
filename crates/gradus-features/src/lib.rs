//! An empty crate whose manifest names features of shared dependencies, so that the command, the tests and the Python
//! package build each dependency once.
