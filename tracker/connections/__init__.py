"""What an engine on a store needs: addresses, connections to SQLite files, versions and messages of drivers."""
