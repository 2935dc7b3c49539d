"""Raw originals and avatars -> projected tables and model.json: `spark-submit jobs/project.py --help`."""

from cloaking.command.project import main
from cloaking.command.run import end

if __name__ == "__main__":
    end(main())
