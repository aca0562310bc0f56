// Two people at the auction, each in a browser of their own.
// spec: CONN-5, CONN-6, EDGE-8, DLV-5
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

const [base, edgesOf] = [process.argv[2], process.argv[3]];
const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"],
});
const problems = [];

async function person(name) {
  const context = await browser.newContext();
  const page = await context.newPage();
  page.on("pageerror", (e) => problems.push(`${name}: ${e.message}`));
  await page.goto(base);
  await page.waitForSelector(".card");
  await page.fill("#name", name);
  await page.click(".paddle button");
  await page.waitForSelector(".bell");
  return page;
}

const price = (page) => page.evaluate(() => Number(document.querySelector("#amount")?.value ?? 0));
const bids = (page) => page.locator(".bid .primary:enabled");
const leads = (page, who) => page.waitForFunction((text) => document.body.innerText.includes(text), `${who} leads`);
const edges = async () => (await (await fetch(edgesOf)).json()).edges;

const ada = await person("Ada");
const ben = await person("Ben");
// The lot with the most time left.
const lot = await ada.evaluate(async () => {
  const board = await (await fetch("api/board")).json();
  return board.lots.filter((l) => !l.facts.closed).sort((x, y) => y.facts.ends - x.facts.ends)[0].about.id;
});
for (const page of [ada, ben]) {
  await page.goto(`${base}#/lot/${lot}`);
  await page.waitForSelector(".bid");
}

// A bid in one shows in the other.
await bids(ada).click();
await leads(ben, "Ada");
await bids(ben).click();
await leads(ada, "Ben");

// A page that was offline catches up.
await ada.context().setOffline(true);
await ada.evaluate(() => {}); // still there
const before = await price(ben);
await ben.click("text=Let a guest bid");
await ben.waitForFunction((was) => Number(document.querySelector("#amount").value) > was, before);
await ada.context().setOffline(false);
await ada.waitForFunction((was) => Number(document.querySelector("#amount")?.value ?? 0) > was, before, { timeout: 40_000 });

// A tab that is closed frees its edges.
const sockets = async () => (await edges()).filter((e) => e.transport === "connection" && e.follower === "Account/Ben").length;
await ben.close();
for (let n = await sockets(); n > 0; n = await sockets()) await new Promise((r) => setTimeout(r, 100));

assert.deepEqual(problems, []);
await browser.close();
console.log("the browsers are content");
