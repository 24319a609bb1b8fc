/** Starts the page: loads the model, connects the panels, and keeps them at the version that the service has. */

import { onTokenNeeded, onVersion, read } from "./api.js";
import { collect, startBasket } from "./basket.js";
import { showCard } from "./card.js";
import { anyOpen, inTurn, resolveOpen } from "./changes.js";
import { loadCatalogue, startCatalogue } from "./catalogue.js";
import { startDecisions, undoLast } from "./decisions.js";
import { askToken } from "./dialogs.js";
import { byId } from "./dom.js";
import { startEffect } from "./effect.js";
import { loadGroups, startGroups } from "./groups.js";
import { startMembers } from "./members.js";
import { openKeys, startKeys } from "./keys.js";
import { answerByKey, newClass, otherClass, startLabelling } from "./labelling.js";
import { startLayout } from "./layout.js";
import { startReview } from "./review.js";
import { startRoving } from "./roving.js";
import { startMap } from "./map.js";
import { showPicture, startPicture } from "./picture.js";
import { writeNote } from "./notes.js";
import { backToQueue, confirmLabel, goOn, namesInQuestion, putBack, reasonAsked, returnToKept, skip, startQueue } from "./queue.js";
import { startSearch } from "./search.js";
import { emit, on, loadedCard, state } from "./state.js";
import { caution, say, showModel, tellError } from "./status.js";
import { takeTokenFromAddress } from "./token.js";
import { loadVersions, startVersions } from "./versions.js";
import { startViews } from "./views.js";

const POLL = 10_000; // milliseconds between checks whether someone else changed the model

/** Shows a node in the card and in the picture. The browser's back button leads to the previous node. */
async function show(id, { remember = true } = {}) {
  const before = state.wanted;
  state.wanted = id;
  if (remember && before !== null && before !== id) history.pushState({ id }, "");
  else if (remember) history.replaceState({ id }, "");
  await Promise.all([showCard(id, show), showPicture(id, show)]);
}

let refreshing = false;
let again = false;

/** Reloads what depends on the version, and again if the version changed meanwhile. */
async function refresh() {
  if (refreshing) {
    again = true;
    return;
  }
  refreshing = true;
  try {
    do {
      again = false;
      state.model = await read("/v1/model");
      showModel(state.model);
      await loadCatalogue();
      await loadVersions();
      if (state.wanted !== null) await show(state.wanted, { remember: false });
    } while (again);
    loadGroups();
  } catch (error) {
    tellError(error);
  } finally {
    refreshing = false;
  }
}

function showOthersChange(version) {
  caution(`Someone else changed the model. The page shows version ${version}.`);
}

/** A later version may come from a change of this page whose answer was lost. */
async function showWhoseChange(version) {
  try {
    if (!(await resolveOpen())) showOthersChange(version);
  } catch (error) {
    tellError(error);
  }
}

function watch() {
  onVersion((version, own) => {
    if (!own && anyOpen()) inTurn(() => showWhoseChange(version));
    else if (!own) showOthersChange(version);
    emit("version");
  });
  on("version", refresh);
  setInterval(() => {
    if (document.hidden) return;
    const request = anyOpen() ? inTurn(resolveOpen) : read("/v1/model");
    request.catch(tellError);
  }, POLL);
}

function connect() {
  let asking = null;
  onTokenNeeded(() => {
    asking ??= askToken("This needs the token that the service was started with.").finally(() => (asking = null));
    return asking;
  });
  byId("token-button").addEventListener("click", () => askToken(null));
  byId("keys-button").addEventListener("click", openKeys);
  const undo = () => returnToKept() || undoLast();
  byId("undo-button").addEventListener("click", undo);
  startKeys({
    digit: answerByKey,
    n: newClass,
    o: otherClass,
    b: () => loadedCard() !== null && collect(state.card.id),
    g: backToQueue,
    m: writeNote,
    skip,
    undo,
    search: () => byId("search").select(),
  });
  addEventListener("popstate", (event) => event.state?.id && show(event.state.id, { remember: false }));
}

async function start() {
  takeTokenFromAddress();
  startLayout();
  startViews();
  connect();
  startDecisions({ show, putBack });
  startLabelling({ goOn, skip, collect, reason: reasonAsked, confirm: confirmLabel, named: namesInQuestion });
  startBasket({ show, goOn });
  startCatalogue();
  startVersions();
  startPicture(show);
  startMembers(show);
  startMap(show);
  startReview(show);
  startSearch(show);
  for (const list of ["decisions", "queue-next", "picture-list"]) startRoving(byId(list));
  try {
    state.model = await read("/v1/model");
    showModel(state.model);
    await loadCatalogue();
    say("Ready.");
    watch();
    await Promise.all([loadVersions(), startQueue(show), startGroups(show), startEffect(show)]);
  } catch (error) {
    tellError(error);
  }
}

start();
