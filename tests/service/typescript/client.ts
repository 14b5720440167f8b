// A program of somebody else: all that it knows of the service is in api.ts, which
// is generated from openapi.json.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

type Schemas = components["schemas"];

const [url, given] = process.argv.slice(2);
assert(url && given);
const { spec, data }: { spec: Schemas["ViscoelasticCampaign"]; data: Schemas["DatasetRequest"] } =
  JSON.parse(given);
const client = createClient<paths>({ baseUrl: url });

/** What was answered, or the problem as an error. */
function answered<T>(answer: { data?: T; error?: Schemas["Problem"] }): T {
  if (answer.data === undefined) throw new Error(answer.error?.detail);
  return answer.data;
}

async function until<T>(done: (now: T) => boolean, look: () => Promise<T>): Promise<T> {
  for (;;) {
    const now = await look();
    if (done(now)) return now;
    await sleep(50);
  }
}

const header = { "idempotency-key": "once" };
const made = answered(await client.POST("/v1/campaigns", { body: spec, params: { header } }));
const again = answered(await client.POST("/v1/campaigns", { body: spec, params: { header } }));
assert.equal(again.id, made.id);

const path = { campaign: made.id };
const complete = await until(
  (now) => now.state === "complete",
  async () => answered(await client.GET("/v1/campaigns/{campaign}", { params: { path } })),
);
// an answer has all its fields: no `?? 0` is needed
const accepted: number = complete.progress.accepted;
assert(accepted > 0 && accepted === complete.progress.total);

const stored = answered(await client.POST("/v1/datasets", { body: data }));
const asked = { campaign: made.id, name: "mine", datasets: [stored.name] };
const inversion = answered(await client.POST("/v1/inversions", { body: asked }));
const query = { campaign: made.id };
const [listed] = await until(
  (items) => items.every((item) => item.state === "accepted"),
  async () => answered(await client.GET("/v1/inversions", { params: { query } })).items,
);
assert.equal(listed?.id, inversion.id);

const of = { path: { inversion: inversion.id } };
const result = answered(
  await client.GET("/v1/inversions/{inversion}/result", { params: of, parseAs: "arrayBuffer" }),
);
const slip: string = answered(
  await client.GET("/v1/inversions/{inversion}/slip", { params: of, parseAs: "text" }),
);

const wrong = { ...spec, sources: { fault: "mian", along_strike: 5, down_dip: 1 } };
const { error, response } = await client.POST("/v1/campaigns", { body: wrong });
assert.equal(response.status, 422);
const findings: Schemas["Finding"][] = error?.errors ?? [];

// @ts-expect-error: the types know which fields there are
const none: unknown = complete.progress.lost;
assert.equal(none, undefined);
console.log(JSON.stringify({ bytes: result.byteLength, slip, findings }));
