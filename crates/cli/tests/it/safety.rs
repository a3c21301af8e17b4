//! What another user of the machine, or a crash at the wrong moment, must not be able to do.

mod module_memory;
