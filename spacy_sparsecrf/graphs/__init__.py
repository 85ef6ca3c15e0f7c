"""CRFs with edges beyond those of a chain, by approximate inference."""
