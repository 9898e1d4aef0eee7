"""Values of options that the user does not type: settings, and completion by the shell."""
