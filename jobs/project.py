"""Raw originals and avatars -> projected tables and model.json: `spark-submit jobs/project.py --help`."""

from cloaking.project_command import main
from cloaking.running import end

if __name__ == "__main__":
    end(main())
