import { walkCrashes } from "../../support/crash-walk.ts";

walkCrashes(2);
