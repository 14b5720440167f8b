"""Problems and suites that tests of several rooms share."""
