"""Pattern files of Wapiti and templates of CRF++."""
