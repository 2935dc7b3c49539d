"""Link, check, count and summarise two projected tables with Spark."""
