"""The tables of Lavergne, Cappé & Yvon (2010), on the available data sets."""
