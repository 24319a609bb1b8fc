/** The digit of each class. In this tab, the digit of a class is never given to another class. */

export const KEYS = 9;
const STORE = "graphfcl.class-keys";

let owners = null; // the class of each digit from 1 on; null where a digit is free

/**
 * Gives free digits to classes: to all classes if there are enough digits, otherwise to used classes, in the order of
 * `used`. A class that no longer exists keeps its digit until the page is reloaded.
 */
export function giveKeys(names, used) {
  owners ??= stored().map((name) => (names.includes(name) ? name : null));
  for (const name of names.length <= KEYS ? names : used.filter((each) => names.includes(each))) {
    const free = owners.indexOf(null);
    if (free < 0) break;
    if (!owners.includes(name)) owners[free] = name;
  }
  keep();
}

/** [digit, class] of all digits that were given. */
export function givenKeys() {
  return (owners ?? []).map((name, place) => [place + 1, name]).filter(([, name]) => name !== null);
}

/** The class of a digit, or null. */
export function classOfKey(digit) {
  return owners?.[digit - 1] ?? null;
}

/** A class was renamed: it keeps its digit. */
export function renameKey(from, to) {
  if (owners === null || owners.includes(to)) return;
  owners = owners.map((name) => (name === from ? to : name));
  keep();
}

function keep() {
  sessionStorage.setItem(STORE, JSON.stringify(owners));
}

function stored() {
  const owned = JSON.parse(sessionStorage.getItem(STORE) ?? "[]");
  return Array.from({ length: KEYS }, (_, place) => owned[place] ?? null);
}
