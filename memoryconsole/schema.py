"""The OpenAPI description, made from the models that read the input and the shapes of the answers.

An endpoint names both once, with `documented`; what every endpoint has in common is added here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NotRequired, TypeVar

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema as SpectacularSchema
from drf_spectacular.utils import OpenApiParameter, extend_schema
from pydantic import TypeAdapter, create_model
from typing_extensions import TypedDict

from memoryconsole.inputs import Input, tidy_schema, without_null

View = TypeVar("View", bound=Callable[..., Any])
Schema = dict[str, Any]
InstanceIn = Literal["query", "body", "either", "path"]

INSTANCE = "The slug of the instance."
PATH_PARAMETERS: dict[str, tuple[Schema, str]] = {
    "id": ({"type": "string", "format": "uuid"}, "The id."),
    "attachmentId": ({"type": "string", "format": "uuid"}, "The id of the attachment."),
    "slug": ({"type": "string"}, INSTANCE),
}

_components: dict[str, Schema] = {}


class ErrorJson(TypedDict):
    """Every error looks like this; `errors` is there when single values of the input are wrong."""

    detail: str
    code: str
    errors: NotRequired[dict[str, list[str]]]


def documented(
    name: str,
    summary: str,
    *,
    answers: Mapping[int, Any],
    query: type[Input] | None = None,
    body: type[Input] | None = None,
    instance: InstanceIn = "query",
    files: Sequence[str] = (),
    downloads: Sequence[str] = (),
) -> Callable[[View], View]:
    """Describe an endpoint: its input models, where it takes the instance from, and the shape of each answer.

    `files` and `downloads` are the media types of bodies and answers that are not JSON.
    """
    parameters = list(_query_parameters(query)) if query else []
    if instance in ("query", "either"):
        parameters.insert(0, OpenApiParameter("instanceId", str, required=instance == "query", description=INSTANCE))
    if body and instance in ("body", "either"):
        body = _with_instance(body, required=instance == "body")
    return extend_schema(
        operation_id=name,
        summary=summary,
        parameters=parameters,
        request={"application/json": _component(body)} if body else {type: _file(type) for type in files} or None,
        responses={
            **{status: _component(shape) for status, shape in answers.items()},
            **{(200, type): {"type": "string", "format": "binary"} for type in downloads},
        },
    )


def _file(type: str) -> Schema:
    file = {"type": "string", "format": "binary"}
    if type != "multipart/form-data":
        return file
    return {"type": "object", "required": ["file"], "properties": {"file": file}, "additionalProperties": False}


def _with_instance(model: type[Input], *, required: bool) -> type[Input]:
    named: Any = (str, ...) if required else (str | None, None)
    return create_model(model.__name__, __base__=model, __doc__=model.__doc__, instance_id=named)


def _component(shape: Any) -> Schema:
    _collect({shape.__name__: _schema_of(TypeAdapter(shape))})
    return {"$ref": f"#/components/schemas/{shape.__name__}"}


def _collect(components: Mapping[str, Schema]) -> None:
    """Add components. Two shapes with one name are an error: one of their endpoints would be described wrongly."""
    for name, schema in components.items():
        if _components.setdefault(name, schema) != schema:
            raise ValueError(f"Two different shapes are called {name}.")


def _query_parameters(model: type[Input]) -> Iterator[OpenApiParameter]:
    schema = _schema_of(TypeAdapter(model))
    for name, field in schema["properties"].items():
        # A query parameter is left out, never null.
        yield OpenApiParameter(name, without_null(field), required=name in schema.get("required", []))


def _schema_of(type: TypeAdapter[Any]) -> Schema:
    """Enumerations are shared as components of their own."""
    schema: Schema = tidy_schema(type.json_schema(ref_template="#/components/schemas/{model}", mode="serialization"))
    _collect(schema.pop("$defs", {}))
    return schema


class AutoSchema(SpectacularSchema):
    def _resolve_path_parameters(self, variables: list[str]) -> list[Schema]:
        return [
            {"in": "path", "name": name, "required": True, "schema": schema, "description": description}
            for name, (schema, description) in ((name, PATH_PARAMETERS[name]) for name in variables)
        ]


class KeyOrSessionScheme(OpenApiAuthenticationExtension):
    target_class = "accounts.api_authentication.KeyOrSession"
    name = ["apiKey", "session"]

    def get_security_definition(self, auto_schema: SpectacularSchema) -> list[Schema]:
        return [
            {"type": "http", "scheme": "bearer", "bearerFormat": "mc_…", "description": "A key made on the Keys page."},
            {
                "type": "apiKey",
                "in": "cookie",
                "name": "sessionid",
                "description": "The console's session; writing also needs the X-CSRFToken header.",
            },
        ]


ERRORS = {
    "400": "The input is wrong, or instanceId is missing.",
    "401": "No key or session, or one that is not valid any more.",
    "403": "The key may only read, or the session's CSRF token is missing.",
    "404": "Absent, or not yours: the answer is the same.",
    "411": "The body came in chunks, without a Content-Length.",
    "413": "The body is too large.",
    "415": "The body is of a type this endpoint does not take, or has a Content-Encoding.",
    "429": "Too many requests; Retry-After says when to come back.",
    "503": "The database cannot be reached.",
}
ONLY_WITH_BODY = {"411", "413", "415"}
HEADERS = {
    "401": {"WWW-Authenticate": {"schema": {"type": "string"}}},
    "429": {"Retry-After": {"schema": {"type": "integer"}}},
}


def document_errors(result: Schema, generator: object, request: object, public: bool) -> Schema:
    """A hook of drf-spectacular: add the components collected above and the errors every endpoint may answer."""
    error = _component(ErrorJson)
    result.setdefault("components", {}).setdefault("schemas", {}).update(_components)
    for operations in result["paths"].values():
        for operation in operations.values():
            _add_errors(operation, error)
    return result


def _add_errors(operation: Schema, error: Schema) -> None:
    responses = operation["responses"]
    body = operation.get("requestBody")
    if body:
        body["required"] = True
    for status, description in ERRORS.items():
        if body or status not in ONLY_WITH_BODY:
            content = {"application/json": {"schema": error}}
            answer = {"description": description, "content": content, "headers": HEADERS.get(status, {})}
            responses.setdefault(status, {name: value for name, value in answer.items() if value})
