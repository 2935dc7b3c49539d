"""Measure Local Cloaking of two projected tables and write its report: `spark-submit jobs/local_cloaking.py --help`."""

from cloaking.command.local_cloaking import main
from cloaking.command.run import end

if __name__ == "__main__":
    end(main())
