package claims

type unit struct {
	name   string
	factor float64
}

// units by their spelling, each with the unit that it is compared in.
var units = map[string]unit{
	"%": {"%", 1}, "percent": {"%", 1}, "prozent": {"%", 1},
	"m": {"m", 1}, "meter": {"m", 1}, "meters": {"m", 1}, "metre": {"m", 1}, "metres": {"m", 1}, "metern": {"m", 1},
	"km": {"m", 1e3}, "kilometer": {"m", 1e3}, "kilometers": {"m", 1e3}, "kilometre": {"m", 1e3}, "kilometres": {"m", 1e3}, "kilometern": {"m", 1e3},
	"cm": {"m", 1e-2}, "centimeter": {"m", 1e-2}, "centimeters": {"m", 1e-2}, "zentimeter": {"m", 1e-2},
	"mm": {"m", 1e-3}, "millimeter": {"m", 1e-3}, "millimeters": {"m", 1e-3},
	"mile": {"m", 1609.344}, "miles": {"m", 1609.344}, "meilen": {"m", 1609.344}, "mi": {"m", 1609.344},
	"ft": {"m", 0.3048}, "feet": {"m", 0.3048}, "foot": {"m", 0.3048}, "inch": {"m", 0.0254}, "inches": {"m", 0.0254},
	"g": {"kg", 1e-3}, "gram": {"kg", 1e-3}, "grams": {"kg", 1e-3}, "gramm": {"kg", 1e-3},
	"mg": {"kg", 1e-6}, "milligram": {"kg", 1e-6}, "milligrams": {"kg", 1e-6}, "milligramm": {"kg", 1e-6},
	"µg": {"kg", 1e-9}, "mcg": {"kg", 1e-9}, "kg": {"kg", 1}, "kilogram": {"kg", 1}, "kilograms": {"kg", 1}, "kilogramm": {"kg", 1}, "kilo": {"kg", 1},
	"t": {"kg", 1e3}, "ton": {"kg", 1e3}, "tons": {"kg", 1e3}, "tonnes": {"kg", 1e3}, "tonnen": {"kg", 1e3},
	"lb": {"kg", 0.45359237}, "lbs": {"kg", 0.45359237}, "pounds": {"kg", 0.45359237},
	"s": {"s", 1}, "sec": {"s", 1}, "second": {"s", 1}, "seconds": {"s", 1}, "sekunde": {"s", 1}, "sekunden": {"s", 1},
	"ms": {"s", 1e-3}, "milliseconds": {"s", 1e-3}, "millisekunden": {"s", 1e-3},
	"min": {"s", 60}, "minute": {"s", 60}, "minutes": {"s", 60}, "minuten": {"s", 60},
	"h": {"s", 3600}, "hour": {"s", 3600}, "hours": {"s", 3600}, "stunde": {"s", 3600}, "stunden": {"s", 3600},
	"day": {"s", 86400}, "days": {"s", 86400}, "tag": {"s", 86400}, "tage": {"s", 86400}, "tagen": {"s", 86400},
	"week": {"s", 604800}, "weeks": {"s", 604800}, "woche": {"s", 604800}, "wochen": {"s", 604800},
	"month": {"months", 1}, "months": {"months", 1}, "monat": {"months", 1}, "monate": {"months", 1}, "monaten": {"months", 1},
	"year": {"months", 12}, "years": {"months", 12}, "jahr": {"months", 12}, "jahre": {"months", 12}, "jahren": {"months", 12},
	"l": {"l", 1}, "liter": {"l", 1}, "liters": {"l", 1}, "litre": {"l", 1}, "litres": {"l", 1}, "ml": {"l", 1e-3}, "milliliter": {"l", 1e-3}, "milliliters": {"l", 1e-3},
	"°c": {"°C", 1}, "°f": {"°F", 1}, "celsius": {"°C", 1}, "fahrenheit": {"°F", 1},
	"b": {"bytes", 1}, "byte": {"bytes", 1}, "bytes": {"bytes", 1}, "kb": {"bytes", 1e3}, "mb": {"bytes", 1e6}, "gb": {"bytes", 1e9}, "tb": {"bytes", 1e12},
	"kib": {"bytes", 1 << 10}, "mib": {"bytes", 1 << 20}, "gib": {"bytes", 1 << 30},
	"$": {"$", 1}, "usd": {"$", 1}, "dollar": {"$", 1}, "dollars": {"$", 1}, "€": {"€", 1}, "eur": {"€", 1}, "euro": {"€", 1}, "euros": {"€", 1}, "£": {"£", 1}, "gbp": {"£", 1},
	"km/h": {"m/s", 1 / 3.6}, "m/s": {"m/s", 1}, "mph": {"m/s", 0.44704},
	"w": {"w", 1}, "kw": {"w", 1e3}, "mw": {"w", 1e6}, "watt": {"w", 1}, "v": {"v", 1}, "volt": {"v", 1}, "volts": {"v", 1},
	"hz": {"hz", 1}, "khz": {"hz", 1e3}, "mhz": {"hz", 1e6}, "ghz": {"hz", 1e9},
	"m²": {"m²", 1}, "km²": {"m²", 1e6}, "m³": {"m³", 1},
}

// scales are words that multiply the number before them.
var scales = map[string]float64{
	"hundred": 1e2, "hundert": 1e2, "thousand": 1e3, "tausend": 1e3, "million": 1e6, "millions": 1e6, "millionen": 1e6, "mio": 1e6,
	"billion": 1e9, "milliarde": 1e9, "milliarden": 1e9, "mrd": 1e9, "trillion": 1e12, "billionen": 1e12,
}

// numerals are numbers in words, read where a text has no digits.
var numerals = map[string]float64{
	"zero": 0, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "twenty": 20, "thirty": 30, "fifty": 50,
	"null": 0, "zwei": 2, "drei": 3, "vier": 4, "fünf": 5, "sechs": 6, "sieben": 7, "acht": 8, "neun": 9, "zehn": 10, "elf": 11, "zwölf": 12, "zwanzig": 20, "dreißig": 30, "fünfzig": 50,
}

func set(words ...string) map[string]bool {
	m := make(map[string]bool, len(words))
	for _, w := range words {
		m[w] = true
	}
	return m
}

// negations turn a sentence into its opposite.
var negations = set("not", "no", "never", "cannot", "without", "nicht", "nein", "kein", "keine", "keinen", "keiner", "keinem", "nie", "niemals", "ohne", "neither", "nor", "weder")

// fillers say nothing of what is claimed.
var fillers = set(
	"the", "a", "an", "of", "to", "in", "on", "at", "is", "are", "was", "were", "be", "been", "it", "its", "it's", "this", "that", "these", "those", "and", "or", "for", "with", "by", "as", "from",
	"there", "here", "you", "your", "i", "we", "they", "he", "she", "his", "her", "their", "will", "would", "can", "could", "should", "may", "might", "do", "does", "did", "has", "have", "had", "so", "about", "approximately", "roughly", "around",
	"exactly", "answer", "if", "then", "than", "also", "which", "who", "what", "when", "where", "how", "why", "just", "very", "yes", "sure", "well", "my", "our", "me",
	"der", "die", "das", "ein", "eine", "einen", "einem", "einer", "und", "oder", "in", "im", "am", "an", "auf", "zu", "zum", "zur", "von", "vom", "mit", "für", "bei", "ist", "sind", "war", "waren", "wird", "werden", "wurde", "wurden", "es", "sie", "er", "wir", "ich", "du", "ihr", "man",
	"dass", "wenn", "als", "auch", "sich", "den", "dem", "des", "etwa", "ungefähr", "rund", "circa", "ca", "genau", "antwort", "ja", "kann", "können", "hat", "haben", "hatte", "aus", "nach", "um", "wie", "was", "wer", "wo", "hier", "dieser", "diese", "dieses", "sehr")

// answers are words at the beginning of answers that are no names.
var answers = set("yes", "no", "ja", "nein", "true", "false", "correct", "incorrect", "richtig", "falsch", "sure", "certainly", "of", "however", "because", "use", "according", "based", "laut", "nach")

// verbs follow a name that begins a sentence.
var verbs = set("is", "was", "are", "were", "has", "had", "wrote", "invented", "discovered", "painted", "won", "became", "ist", "war", "hat", "schrieb", "erfand", "entdeckte", "malte", "gewann", "wurde")
