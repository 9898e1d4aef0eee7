"""Vocabulary of the simulated prompts; places and measures are invented."""

from __future__ import annotations


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


PEOPLE = _words(
    "Adele Bruno Carla Dorian Elvira Fabian Greta Hanno Ilse Jonas Katrin Linus Mirela Nando Odette Pavel Quirin "
    "Rosalie Silvan Tamsin Ugo Verena Wanda Xaver Yolanda Zeno Alma Benno Clio Dagny Emeric Floriane Gideon Helka "
    "Ivo Jorinde Kasimir Leonie Milan Nadja"
)
TOWNS = _words(
    "Arvenholt Brellin Cassowick Dunmarra Eskelund Farrowby Gostrand Hollenfeld Istrava Jurenn Kelmouth Lindrath "
    "Morvenna Nethercove Ostrelle Pellworth Quarnby Rusk Sarnholm Tolvane Ulverdal Vintrasse Wexmoor Yarrowgate "
    "Zellbruck Aldermere Bancroy Corvane Drossen Elmarsh Fenwickel Grauhafen Harlose Immerath Jostrim Karsund "
    "Lowenna Marfeld Norskhaven Oderby"
)
PROVINCES = _words(
    "Velmora Astrany Belcovia Ciswold Drovania Estmark Fellgard Gorland Hestria Isenmoor Jorvale Kestany Lorwick "
    "Merovale Nordovia Osmark"
)
RIVERS = _words(
    "Ablin Brune Cressel Dravel Eiler Fosse Glinn Hurrel Isk Jolle Krumm Lethen Mossel Nidder Oust Pruthen Rilla "
    "Sorne Tamber Ussel"
)
GOODS = _words(
    "lanterns baskets notebooks candles teapots umbrellas kettles mirrors pencils blankets marbles walnuts "
    "pumpkins stamps buttons ribbons whistles hammers cushions mugs violins ladders postcards thimbles scarves "
    "brooms lemons radishes tulips bricks"
)
SERVICES = _words("ferry tram sleigh coach bicycle funicular barge motorbike")
CALLINGS = _words("baker singer swimmer gardener potter sailor drummer weaver farmer juggler teacher climber")
MEASURES = _words("murn tolk vesh brin quar lint stang pell grell dask fenn hoolt yarl nask trel wim")
TIMBERS = _words("plank rail beam pole girder pipe")
LIQUIDS = _words("cider vinegar syrup honey juice oil milk ink")
MONTHS = _words("January February March April May June July August September October November December")
WEEKDAYS = _words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
COMPARISONS = (("taller", "tallest"), ("older", "oldest"), ("faster", "fastest"), ("heavier", "heaviest"))
