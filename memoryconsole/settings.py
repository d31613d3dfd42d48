"""The project's settings, and the only file that reads the environment.

Every variable is described in `.env.example`; a `.env` beside `manage.py` is read first.
"""

from pathlib import Path

from django.contrib.messages import constants

from memoryconsole import environment as env
from memoryconsole.secrets import kept_secret

BASE_DIR = Path(__file__).resolve().parent.parent
if not env.flag("IGNORE_DOTENV", False):
    env.read_file(BASE_DIR / ".env")

# Relative to the project, not to the working directory: a command run by cron would start an empty database there.
DATA_DIR = BASE_DIR / env.path("DATA_DIR", ".data")
HOST = env.text("HOST", "127.0.0.1")
PORT = env.number("PORT", 8000, low=1, high=65535)
# The local port between web server and MCP server; `up` chooses a free one and tells both.
MCP_PORT = env.number("MCP_PORT", 0, low=0, high=65535)
ADMIN_USERNAME = env.text("ADMIN_USERNAME", "admin")
ADMIN_PASSWORD = env.text("ADMIN_PASSWORD")

DEBUG = False
SECRET_KEY = env.text("SECRET_KEY") or kept_secret(DATA_DIR, "secret-key")
FIELD_ENCRYPTION_KEYS = env.fernet_keys("FIELD_ENCRYPTION_KEYS", lambda: kept_secret(DATA_DIR, "field-encryption-key"))
ALLOWED_HOSTS = env.hosts("ALLOWED_HOSTS", ["127.0.0.1", "localhost", "[::1]"])
HTTPS = env.flag("HTTPS", False)
PROXIES = env.number("PROXIES", 0, low=0, high=9)

INSTALLED_APPS = [
    "django.forms",
    "accounts",  # before Django's own, whose `changepassword` it replaces
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.postgres",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "axes",
    "django_htmx",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "procrastinate.contrib.django",
    "rest_framework",
    "template_partials",
    "memoryconsole",
    "instances",
    "conversations",
    "memories",
]

MIDDLEWARE = [
    "memoryconsole.metrics.measure",
    "django.middleware.security.SecurityMiddleware",
    "memoryconsole.middleware.content_security_policy",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "memoryconsole.middleware.known_hosts",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "memoryconsole.middleware.shortcut_for_programs",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "memoryconsole.middleware.sign_in_first",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "memoryconsole.middleware.reader_time_zone",
    "memoryconsole.middleware.pages_for_errors",
    "axes.middleware.AxesMiddleware",
    "memoryconsole.middleware.end_of_shortcut",
]

ROOT_URLCONF = "memoryconsole.urls"
WSGI_APPLICATION = "memoryconsole.wsgi.application"
APPEND_SLASH = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "accounts.context.console",
            ],
        },
    }
]

FORM_RENDERER = "django.forms.renderers.TemplatesSetting"

DATABASE_URL = env.postgres_url("DATABASE_URL")
EMBEDDED_POSTGRES = DATABASE_URL is None
PG_BIN_DIR = env.text("PG_BIN_DIR")
PG_FSYNC = env.flag("PG_FSYNC", True)
DATABASES = {
    "default": {
        "ENGINE": "memoryconsole.postgres",
        "NAME": "memoryconsole",
        "CONN_MAX_AGE": 0,
        **(DATABASE_URL or {}),
        "OPTIONS": {
            "pool": {
                "min_size": 1,
                "max_size": env.number("DB_POOL_SIZE", 16, low=2, high=500),
                "timeout": 10,
                # After this the pool gives up, and the next request makes it try at once. Until then its pauses grow.
                "reconnect_timeout": 2,
            },
            "connect_timeout": 5,
            "server_side_binding": True,
            "prepare_threshold": 0,
            **(DATABASE_URL or {}).get("OPTIONS", {}),
        },
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "accounts.User"
LOGIN_URL = "/login"
LOGIN_REDIRECT_URL = "/memory"
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
AXES_FAILURE_LIMIT = 8
AXES_COOLOFF_TIME = 0.25  # hours
AXES_CLIENT_IP_CALLABLE = "accounts.throttling.address_of"
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_LOCKOUT_CALLABLE = "accounts.views.signing_in.locked_out"
AXES_VERBOSE = False

SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
CSRF_FAILURE_VIEW = "memoryconsole.error_pages.not_trusted"
CSRF_TRUSTED_ORIGINS = env.origins("CSRF_TRUSTED_ORIGINS")
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
# A setting of Django 6; until then `memoryconsole.middleware` reads it.
SECURE_CSP = {
    "default-src": ["'self'"],
    "img-src": ["'self'", "data:"],
    "object-src": ["'none'"],
    "base-uri": ["'none'"],
    "form-action": ["'self'"],
    "frame-ancestors": ["'none'"],
}

LANGUAGE_CODE = "en-gb"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

MESSAGE_TAGS = {constants.SUCCESS: "good", constants.WARNING: "warn", constants.ERROR: "danger"}

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True
MEDIA_ROOT = DATA_DIR / "attachments"
FILE_UPLOAD_HANDLERS = [
    "memoryconsole.upload_limit.UploadLimit",
    "django.core.files.uploadhandler.MemoryFileUploadHandler",
    "memoryconsole.upload_spool.UploadSpool",
]
FILE_UPLOAD_PERMISSIONS = 0o600
FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o700
ATTACHMENT_MAX_BYTES = env.number("ATTACHMENT_MAX_MB", 10, low=1, high=1000) * 1024 * 1024
IMPORT_MAX_BYTES = env.number("IMPORT_MAX_MB", 2000, low=1, high=2000) * 1024 * 1024
DATA_UPLOAD_MAX_MEMORY_SIZE = 64 * 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 20_000

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["accounts.api_authentication.KeyOrSession"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_THROTTLE_CLASSES": ["accounts.throttling.PerCallerThrottle"],
    "NUM_PROXIES": PROXIES,
    "DEFAULT_RENDERER_CLASSES": ["memoryconsole.api.QuickJSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["memoryconsole.api.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "memoryconsole.schema.AutoSchema",
    "EXCEPTION_HANDLER": "memoryconsole.api.exception_handler",
    "UNAUTHENTICATED_USER": None,
}
API_REQUESTS_PER_MINUTE = env.number("API_REQUESTS_PER_MINUTE", 30_000, low=1, high=10_000_000)
SPECTACULAR_SETTINGS = {
    "TITLE": "Memory Console API",
    "DESCRIPTION": "Store, search, correct and delete what AI assistants remember, one instance at a time.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SORT_OPERATION_PARAMETERS": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "POSTPROCESSING_HOOKS": ["memoryconsole.schema.document_errors"],
}

OPENAI_API_KEY = env.key("OPENAI_API_KEY")
OPENAI_BASE_URL = env.address("OPENAI_BASE_URL")
AZURE_OPENAI_ENDPOINT = env.address("AZURE_OPENAI_ENDPOINT")
AZURE_OPENAI_API_KEY = env.key("AZURE_OPENAI_API_KEY")
AZURE_OPENAI_API_VERSION = env.text("AZURE_OPENAI_API_VERSION", "2024-10-21")
AZURE_OPENAI_EMBEDDING_DEPLOYMENT = env.text("AZURE_OPENAI_EMBEDDING_DEPLOYMENT")
AZURE_OPENAI_CHAT_DEPLOYMENT = env.text("AZURE_OPENAI_CHAT_DEPLOYMENT")
EMBEDDING_MODEL = env.text("EMBEDDING_MODEL", "text-embedding-3-small")
FAST_MODEL = env.text("FAST_MODEL", "gpt-4o-mini")

PROCRASTINATE_IMPORT_PATHS = ["memoryconsole.housekeeping"]
PROCRASTINATE_AUTODISCOVER_MODULE_NAME = "jobs"
PROCRASTINATE_WORKER_DEFAULTS = {"concurrency": 4}

LOG_LEVEL = env.one_of("LOG_LEVEL", "INFO", ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"])
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": "memoryconsole.logs.formatter"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": LOG_LEVEL},
    "loggers": {
        "axes": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
        "mcp": {"level": "WARNING"},
        "procrastinate": {"level": "WARNING"},
        "psycopg.pool": {"level": "ERROR"},
        "uvicorn": {"level": "WARNING"},
    },
}
