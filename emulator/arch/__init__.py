"""arch: what processors say of themselves, whatever software runs on them."""
