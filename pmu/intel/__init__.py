"""x86's counting hardware."""
