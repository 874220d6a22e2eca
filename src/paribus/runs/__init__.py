"""What a run is on disk: its id, its record, its manifest, where it came from, its tracker."""
