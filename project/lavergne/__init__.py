"""The tables of Lavergne, Cappé & Yvon (2010), on the data that can be had."""
