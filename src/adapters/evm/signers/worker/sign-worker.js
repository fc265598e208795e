// @ts-check
import { workerData } from "node:worker_threads";
import { serve } from "../../threads/serve.js";
import { openSigning } from "./signing.js";

/** Entry point of the signing thread. */
const { curve, sign } = await openSigning(workerData);
serve(sign, { hello: { ready: curve }, weigh: ([, items]) => items.length });
