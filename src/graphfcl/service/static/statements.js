/** Who gave a label, when, why its node was suggested, and the note, in words. */

/** A time in the reader's locale and time zone; other texts unchanged. */
export function timeText(when) {
  const time = new Date(when);
  return Number.isNaN(time.getTime()) || !when.includes("T") ? when : time.toLocaleString();
}

/** "ann, 19/11/2026, 10:02:11: looks unknown. “Seen twice.”" */
export function statementText({ by, when, kept: { reviewed, reason: why, note } }) {
  const who = [by || "without a name", when && timeText(when)].filter(Boolean).join(", ");
  const reason = reviewed ? "looked at it, and it stays" : why;
  return `${who}${reason ? `: ${reason}` : ""}${note ? `. “${note}”` : ""}`;
}

/** Who gave a label, for a sentence: "ann and bob", or "someone". */
export function peopleText(statements) {
  const names = [...new Set(statements.map((each) => each.by).filter(Boolean))];
  return names.length > 0 ? names.join(" and ") : "someone";
}
