"""CRFs with edges beyond the chain, by approximate inference."""
