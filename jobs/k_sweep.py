"""Run the k sweep on simulated avatars: `spark-submit jobs/k_sweep.py --help`."""

from cloaking.command.k_sweep import main
from cloaking.command.run import end

if __name__ == "__main__":
    end(main())
