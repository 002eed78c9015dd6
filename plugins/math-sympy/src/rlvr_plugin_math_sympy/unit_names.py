"""The units that are known, by all names of each."""

from __future__ import annotations

import re

_TABLE = """
mm millimeter millimetre 毫米
cm centimeter centimetre 厘米
dm decimeter decimetre 分米
m meter metre 米
km kilometer kilometre 千米 公里
in inch inches
ft foot feet 英尺
yd yard 码
mi mile 英里
mg milligram 毫克
g gram gramme 克
kg kilogram kilo 千克 公斤
t ton tonne 吨
lb lbs 磅
pound
oz ounce
ml milliliter millilitre mL 毫升
L liter litre l 升
s second sec secs 秒
min minute mins 分钟 分
h hour hr hrs 小时 时
day days 天 日
week 周 星期
month 月 个月
year yr yrs 年
degree deg ° degrees 度
rad radian radians 弧度
usd $ dollar dollars buck 美元
eur € euro euros 欧元
gbp £ 英镑
cny ¥ yuan rmb 元 块 块钱 人民币
inr ₹ rupee rs
cent cents ¢ 美分
mi/h mph
km/h kmh kph
Hz hertz
N newton
J joule
W watt
kW kilowatt
V volt
A ampere amp
K kelvin
kWh
kJ kilojoule
kN kilonewton
kPa kilopascal
MHz megahertz
GHz gigahertz
kHz kilohertz
dB decibel
eV
cal calorie
kcal kilocalorie
MB megabyte
GB gigabyte
TB terabyte
byte
bit
ohm Ω 欧姆
farad
henry
tesla
watt-hour
rpm
psi
atm atmosphere
acre 英亩
hectare 公顷
gallon gal 加仑
quart
pint
cup
tablespoon tbsp
teaspoon tsp
ounce
carat 克拉
knot
lightyear light-year 光年
decade
century centuries 世纪
won 韩元
yen 日元
peso
baht
ruble
franc
person people 人 个人
child children
Pa pascal
°C celsius degreecelsius degreescelsius
°F fahrenheit degreefahrenheit degreesfahrenheit
mol mole
unit units 个单位
"""
CANONICAL: dict[str, str] = {}
for _line in _TABLE.strip().splitlines():
    _first, *_others = _line.split()
    for _name in (_first, *_others):
        CANONICAL[_name] = _first
_FOLDED = {name.casefold(): symbol for name, symbol in CANONICAL.items() if len(name) > 2}

_PREFIXED = re.compile(r"(?:[pnμmkMGT](?:[msgANJWVΩFHLlK]|mol|Hz|Pa|eV|bar|Wb)|[cd][mLl])")
"""Symbols with the prefixes that are in use; those of the table come before them."""


def known_unit(word: str) -> str | None:
    """Return the one name of a unit, whatever name or spelling `word` is; None if it is unknown."""
    if word in CANONICAL:
        return CANONICAL[word]
    folded = re.sub(r"[\s.]", "", word.casefold())
    for name in (folded, folded.removesuffix("s"), folded.removesuffix("es")):
        if name in _FOLDED:
            return _FOLDED[name]
    if _PREFIXED.fullmatch(word):
        return word.replace("l", "L") if word.endswith("l") and word != "mol" else word
    return None


def is_known(name: str) -> bool:
    """Return whether all factors of a canonical name are known units."""
    factors = re.split(r"[/.]", name.removeprefix("/"))
    return all(known_unit(factor.split("^")[0]) is not None for factor in factors)
