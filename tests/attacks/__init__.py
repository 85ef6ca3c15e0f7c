"""What is made to do harm: files and inputs that must be refused, or be harmless."""
