"""Runs an implementation in another interpreter, here or on another machine.

The near side is the suite. It reaches the far side through an execnet gateway, sends the few
modules that are needed there, and keeps the expected results to itself. On the far side the
gateway's own process is the keeper: it starts a worker, hands it one request at a time, and ends
it when it hangs. The implementation runs in the worker alone.
"""
