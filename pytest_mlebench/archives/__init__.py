"""Large zips, unpacked by several processes; nothing but the standard library is imported here."""
