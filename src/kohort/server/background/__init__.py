"""What runs beside the loop: its threads, tasks of machines, and code of plug-ins."""
