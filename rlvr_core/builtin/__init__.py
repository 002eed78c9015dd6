"""The verifiers, samplers, estimators and losses that ship with core."""
