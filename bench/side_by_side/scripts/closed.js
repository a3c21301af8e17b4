// k6: CLIENTS clients, each asking again as soon as it has its answer.
import http from "k6/http";

export const options = { vus: Number(__ENV.CLIENTS), duration: `${__ENV.SECONDS}s`, discardResponseBodies: true };

export default function () {
  http.get(__ENV.URL);
}
