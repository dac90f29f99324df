//! The MachineSet controller: keeps a number of Machines of one template.
