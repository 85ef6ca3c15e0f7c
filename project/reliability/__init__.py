"""How reliable the package is: crafted files, faults of the system, runs that are cut off."""
