"""Models that agents call through us: keys stay outside, calls are counted, budgets hold.

    with open_gateway(agent, job.folder, run_account=keeping.run_account) as gateway:
        ending = sandbox.run(replace(job, services=(gateway,)))
    gateway.summary()                        # Spending: tokens and dollars by model

``spending`` and ``own_usage`` are light: what a record holds. The rest is for a running attempt.
"""
