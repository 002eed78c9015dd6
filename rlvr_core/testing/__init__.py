"""What tests of core, of plugins and of users' stacks share."""
