"""Remote control of the published client, for tests that must act between its calls.

Reads one JSON request a line and answers each with one JSON line:

    {"id": 1, "new": "Client", "args": ["127.0.0.1:5000"], "kwargs": {"tenant_id": "t1"}, "as": "c"}
    {"id": 2, "on": "c", "call": "publish", "args": ["t1", "default", "s", {"bytes": "aGk="}]}
    {"id": 3, "on": "sub", "get": "closed"}

"as" keeps the result under a name. Requests run in threads of their own, so
a call that blocks does not keep later ones from running; answers carry the
id of their request. {"bytes": base64} stands for bytes both ways, and
{"filter": ["key", "k"]} for a CacheWatchFilter.
"""

import base64
import json
import sys
import threading

import felix

objects = {}
write_lock = threading.Lock()


def decode(value):
    if isinstance(value, dict):
        if set(value) == {"bytes"}:
            return base64.b64decode(value["bytes"])
        if set(value) == {"filter"}:
            kind, text = value["filter"]
            return getattr(felix.CacheWatchFilter, kind)(text)
        if set(value) == {"object"}:
            return objects[value["object"]]
        if set(value) == {"op"}:
            name, *args = value["op"]
            return getattr(felix.CommitOp, name)(*[decode(a) for a in args])
        return {(int(k) if k.isdigit() else k): decode(v) for k, v in value.items()}
    if isinstance(value, list):
        return [decode(v) for v in value]
    return value


def encode(value):
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, (list, tuple)):
        return [encode(v) for v in value]
    if isinstance(value, dict):
        return {str(k): encode(v) for k, v in value.items()}
    fields = {"class": type(value).__name__}
    for name in dir(value):
        if not name.startswith("_") and not callable(getattr(value, name)):
            fields[name] = encode(getattr(value, name))
    return fields


def describe(error):
    kind = type(error)
    return {
        "class": kind.__name__,
        "felix": isinstance(error, felix.FelixError),
        "message": str(error),
        "code": getattr(error, "code", None),
        "retry": getattr(error, "retry", None),
        "detail": getattr(error, "detail", None),
    }


def run(request):
    try:
        args = decode(request.get("args") or [])
        kwargs = {k: decode(v) for k, v in (request.get("kwargs") or {}).items()}
        if "new" in request:
            result = getattr(felix, request["new"])(*args, **kwargs)
        elif "get" in request:
            result = getattr(objects[request["on"]], request["get"])
        elif "drop" in request:
            result = None
            del objects[request["drop"]]
        else:
            result = getattr(objects[request["on"]], request["call"])(*args, **kwargs)
        if "as" in request:
            objects[request["as"]] = result
            answer = {"id": request["id"], "value": {"class": type(result).__name__}}
        else:
            answer = {"id": request["id"], "value": encode(result)}
        result = None
    except StopIteration:
        answer = {"id": request["id"], "end": True}
    except BaseException as error:  # a panic in the extension is no Exception
        answer = {"id": request["id"], "error": describe(error)}
    with write_lock:
        print(json.dumps(answer), flush=True)


def main():
    with write_lock:
        print(json.dumps({"id": 0, "value": felix.__version__}), flush=True)
    for line in sys.stdin:
        threading.Thread(target=run, args=(json.loads(line),), daemon=True).start()


main()
