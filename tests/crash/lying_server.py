"""`hubweir` on a disk that answers syncs without having synced: the planted defect of test_service_power_cut.py."""

from hubweir.cli.main import main
from hubweir.messaging_store.disk.files import SystemFile, SystemFiles

SystemFile.sync = lambda self: None  # type: ignore[method-assign]
SystemFile.write_and_sync = SystemFile.write  # type: ignore[method-assign]
SystemFiles.sync_folder = lambda self, path: None  # type: ignore[method-assign]
main()
