"""Binary images on lattices (Vishwanathan et al. 2006, section 5.1), with shapes drawn here."""
