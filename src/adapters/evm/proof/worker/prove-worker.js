// @ts-check
import { serve } from "../../threads/serve.js";
import { proveBlock } from "./prove-block.js";

// The proving thread: a block takes thousands of hashes, which would block the event loop.
serve(proveBlock);
