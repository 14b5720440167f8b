"""Problems and suites that tests of several packages share."""
