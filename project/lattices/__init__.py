"""Binary images on lattices (Vishwanathan et al. 2006, section 5.1), on shapes of our own."""
