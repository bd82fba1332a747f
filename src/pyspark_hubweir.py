"""For Spark alone: a module that its first look-up of data sources imports, because its name begins with `pyspark_`.

That look-up runs in a worker process of its own, in which nothing else of ours is imported. This makes it end without
the noise of which hubweir/spark/worker_process.py tells. The formats are registered by hubweir.spark.register.
"""

import hubweir.spark.worker_process  # noqa: F401 - for what it does when it is imported
