"""The kernel of actions on clusters: snapshot, refusals, audit log, apply, verify, undo, leadership.

A kind of action adds its rules (plan.rules.ActionRules) and its steps (executor.ActionSteps); see
fleetgauge_operations.mitigation for four of them.
"""
