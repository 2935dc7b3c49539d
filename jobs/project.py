"""Project raw originals and avatars, and write model.json: `spark-submit jobs/project.py --help`."""

from cloaking.command.project import main
from cloaking.command.run import end

if __name__ == "__main__":
    end(main())
