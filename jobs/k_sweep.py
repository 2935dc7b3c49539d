"""Originals -> how the metric answers to k, on simulated avatars: `spark-submit jobs/k_sweep.py --help`."""

from cloaking.running import end
from cloaking.sweep_command import main

if __name__ == "__main__":
    end(main())
