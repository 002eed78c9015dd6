"""What runs inside the sandbox.

The texts of these modules are handed to the interpreter there; they use nothing but the standard
library. Each is executed with a copy of the builtins, so that an answer that replaces builtins does
not reach them.
"""
