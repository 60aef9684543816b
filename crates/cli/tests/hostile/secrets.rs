//! Where keys are not: arguments, the environment of user code, scratch folders, journal, logs.
